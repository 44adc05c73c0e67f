"""The registry of state encoders, apart from their interface, which loads torch: names are listed without it."""

from typing import TYPE_CHECKING

from cuolr.registry import Registry

if TYPE_CHECKING:
    from cuolr.networks.encoder import StateEncoder

ENCODERS: Registry[type["StateEncoder"]] = Registry(
    "encoder", package="cuolr.networks", entry_points="cuolr.encoders", base="StateEncoder", variable="ENCODERS"
)
