"""Models for search engines and other libraries, one file per target."""

from typing import TYPE_CHECKING

from cuolr.registry import Registry

if TYPE_CHECKING:
    from cuolr.export.exporter import Exporter

# Here, apart from the interface of exporters: names are listed without loading any.
EXPORTERS: Registry[type["Exporter"]] = Registry(
    "target", package="cuolr.export", entry_points="cuolr.exporters", base="Exporter", variable="EXPORTERS"
)
