"""An estimator is made of a configuration and called with a dictionary."""

from __future__ import annotations

from typing import Any, ClassVar

from omegaconf import OmegaConf


class BaseEstimator:
    """glue-factory's base: a subclass has `_init` and `_forward`."""

    base_default_conf: ClassVar[dict[str, Any]] = {"name": "???", "ransac_th": "???"}

    def __init__(self, conf: Any) -> None:
        defaults = OmegaConf.merge(self.base_default_conf, OmegaConf.create(self.default_conf))
        self.conf = conf = OmegaConf.merge(defaults, conf)
        OmegaConf.set_readonly(conf, True)
        OmegaConf.set_struct(conf, True)
        self._init(conf)

    def __call__(self, data: dict[str, Any]) -> dict[str, Any]:
        return self._forward(data)
