from credo.cli import app

app()
