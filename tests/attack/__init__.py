"""The attack, kept: what is done to credo on purpose, by kinds, for as long as one likes; see docs/attack.md."""
