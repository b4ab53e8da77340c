"""Match conditions: a webhook or policy applies only if all are true."""

from __future__ import annotations

from kubist.api.admission.policies.evaluation import Evaluation, Expression, Failed, OutOfBudget
from kubist.api.kinds.admissionregistration.expressions import Environment
from kubist.model.meta.object import Object


class Conditions:
    """Match conditions of one webhook or policy."""

    def __init__(self, conditions: list[Object], environment: Environment, *, ignores_failure: bool) -> None:
        self._expressions = [Expression(c.get("expression", ""), environment, "bool") for c in conditions]
        self._ignores_failure = ignores_failure

    def __bool__(self) -> bool:
        return bool(self._expressions)

    async def hold(self, evaluation: Evaluation) -> bool:
        """Whether all conditions are true. A false condition decides at once. Otherwise an error raises Failed, or
        counts as false with failurePolicy Ignore."""
        errors: list[str] = []
        for expression in self._expressions:
            try:
                if await evaluation.value(expression) is False:
                    return False
            except OutOfBudget as error:
                errors = [str(error)]
                break
            except Failed as error:
                errors.append(str(error))
        if not errors:
            return True
        if self._ignores_failure:
            return False
        errors = list(dict.fromkeys(errors))
        raise Failed(errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]")
