"""All kinds of files."""

from fuzz.kinds import folders, labelled_data, models, tables

KINDS = {kind.name: kind for kind in (*labelled_data.KINDS, *tables.KINDS, *folders.KINDS, *models.KINDS)}
