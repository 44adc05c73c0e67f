"""The registry of exporters, apart from their interface: names are listed without loading any."""

from typing import TYPE_CHECKING

from cuolr.registry import Registry

if TYPE_CHECKING:
    from cuolr.export.exporter import Exporter

EXPORTERS: Registry[type["Exporter"]] = Registry(
    "target", package="cuolr.export", entry_points="cuolr.exporters", base="Exporter", variable="EXPORTERS"
)
