"""Layers and state encoders, one file per encoder."""

from typing import TYPE_CHECKING

from cuolr.registry import Registry

if TYPE_CHECKING:
    from cuolr.networks.encoder import StateEncoder

# Here, apart from the interface of state encoders, which load torch: names are listed without loading any.
ENCODERS: Registry[type["StateEncoder"]] = Registry(
    "encoder", package="cuolr.networks", entry_points="cuolr.encoders", base="StateEncoder", variable="ENCODERS"
)
