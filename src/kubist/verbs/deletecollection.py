"""deletecollection: every object of a selection, each as by delete, in key order."""

from __future__ import annotations

from kubist.http.messages import Response
from kubist.meta import status
from kubist.verbs import body, list as list_verb
from kubist.verbs.call import Call
from kubist.verbs.delete import remove
from kubist.verbs.options import delete_options, list_options
from kubist.verbs.selection import Selection


async def deletecollection(call: Call) -> Response:
    shown = call.negotiate("list")
    options = delete_options(body.read_delete_options(call), call.query)
    chosen = list_options({name: value for name, value in call.query.items() if name != "watch"})
    call.context.dry_run = options.dry_run
    call.resource.strategy.before_delete(call.context, "", options.propagation)
    page = await list_verb.find(call, chosen, Selection(call, chosen))
    for entry in page.entries:
        current = call.api.registry.collection(call.resource).get(entry.key)
        if current is None:
            continue
        try:
            await remove(call, current, options)
        except status.APIError as error:
            if error.code != 404:
                raise
    body_ = await shown.whole_list(page.entries, page.meta(custom=call.resource.custom))
    return await call.respond(200, body_, shown.content_type)
