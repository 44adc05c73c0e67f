"""Presets: named settings of a whole run, one TOML file each."""
