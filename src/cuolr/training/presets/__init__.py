"""Named settings of a whole run, a TOML file each."""
