"""AlwaysPullImages: sets imagePullPolicy Always, so that a pod needs credentials for its images even if a node has
them."""

from __future__ import annotations

from collections.abc import Iterator

from kubist.api.admission.plugin import CREATE, UPDATE, Plugin, forbidden
from kubist.api.resources.context import Context
from kubist.model.meta import fields, status
from kubist.model.meta.object import Object

LISTS = ("initContainers", "containers", "ephemeralContainers")


class AlwaysPullImages(Plugin):
    resources = ("pods",)
    operations = (CREATE, UPDATE)

    def admit(self, ctx: Context, new: Object | None, old: Object | None) -> None:
        assert new is not None
        if not _new_images(new, old):
            return
        for _, container in _containers(new):
            container["imagePullPolicy"] = "Always"
        for volume in new["spec"].get("volumes") or ():
            if volume.get("image") is not None:
                volume["image"]["pullPolicy"] = "Always"

    def validate(self, ctx: Context, new: Object | None, old: Object | None) -> None:
        assert new is not None
        if not _new_images(new, old):
            return
        policies = [(f"{path}.imagePullPolicy", c.get("imagePullPolicy", "")) for path, c in _containers(new)]
        for index, volume in enumerate(new["spec"].get("volumes") or ()):
            if volume.get("image") is not None:
                policies.append(
                    (f"spec.volumes[{index}].image.pullPolicy", volume["image"].get("pullPolicy", ""))
                )
        wrong = [
            fields.not_supported(path, policy, ["Always"]) for path, policy in policies if policy != "Always"
        ]
        if wrong:
            errors = list(dict.fromkeys(forbidden(ctx, new, str(error)).message for error in wrong))
            raise status.plain_error(errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]")


def _containers(pod: Object) -> Iterator[tuple[str, Object]]:
    for field in LISTS:
        for index, container in enumerate(pod["spec"].get(field) or ()):
            yield f"spec.{field}[{index}]", container


def _new_images(new: Object, old: Object | None) -> bool:
    """Whether the pod has an image that it did not have before."""
    if old is None:
        return True
    before = {container.get("image") for _, container in _containers(old)}
    return any(container.get("image") not in before for _, container in _containers(new))
