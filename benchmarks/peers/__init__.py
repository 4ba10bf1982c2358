"""Programs that run in the peers' own environment: `make .venv-peers/.installed`."""
