"""A model is made of a configuration, checks that its inputs are there, and is found by the name of its module."""

from __future__ import annotations

import importlib
import inspect
from types import ModuleType
from typing import Any, ClassVar

from torch import nn


class BaseModel(nn.Module):
    """hloc's base: a subclass has `_init` and `_forward`."""

    default_conf: ClassVar[dict[str, Any]] = {}
    required_inputs: ClassVar[list[str]] = []

    def __init__(self, conf: dict[str, Any]) -> None:
        super().__init__()
        self.conf = conf = {**self.default_conf, **conf}
        self._init(conf)

    def forward(self, data: dict[str, Any]) -> Any:
        """Check the inputs and call the subclass."""
        assert set(self.required_inputs) <= set(data), f"missing keys in {sorted(data)}"
        return self._forward(data)


def dynamic_load(root: ModuleType, model: str) -> type:
    """Return the only class of models that a module of a package defines."""
    path = f"{root.__name__}.{model}"
    module = importlib.import_module(path)
    own = [
        of
        for _, of in inspect.getmembers(module, inspect.isclass)
        if of.__module__ == path and issubclass(of, BaseModel)
    ]
    assert len(own) == 1, own
    return own[0]
