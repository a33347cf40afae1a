"""AdamW for models in bfloat16: updates go to float32 copies of the weights, since most are too small for eight bits of precision."""

from collections.abc import Iterable
from typing import Any

import torch


class MasterAdamW(torch.optim.AdamW):
    """AdamW on float32 copies of a model's weights (Micikevicius et al. 2018, section 3.1), which are rounded back after each step.

    On CPUs with native bfloat16 this takes about half the time of float32 weights under autocast, which converts them in each pass.
    """

    def __init__(self, parameters: Iterable[torch.nn.Parameter], **options: Any) -> None:
        """Copy the parameters; `options` are AdamW's."""
        self.rounded = list(parameters)
        super().__init__([parameter.detach().float().clone().requires_grad_() for parameter in self.rounded], **options)

    @property
    def masters(self) -> list[torch.Tensor]:
        """The copies, in the order of the parameters."""
        return [parameter for group in self.param_groups for parameter in group["params"]]

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        """Update the copies from the gradients of the model's weights, then round them into the model."""
        for master, parameter in zip(self.masters, self.rounded, strict=True):
            master.grad = None if parameter.grad is None else parameter.grad.float()
        result = super().step(closure)
        self._round()
        return result

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of the model's weights and of the copies."""
        super().zero_grad(set_to_none)
        for parameter in self.rounded:
            parameter.grad = None

    def state_dict(self) -> dict[str, Any]:
        """AdamW's, with the copies."""
        return {**super().state_dict(), "masters": [master.detach() for master in self.masters]}

    @torch.no_grad()
    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from a state with its copies."""
        super().load_state_dict({name: value for name, value in state_dict.items() if name != "masters"})
        for master, kept in zip(self.masters, state_dict["masters"], strict=True):
            master.copy_(kept)
        self._round()

    @torch.no_grad()
    def _round(self) -> None:
        for master, parameter in zip(self.masters, self.rounded, strict=True):
            parameter.copy_(master)
