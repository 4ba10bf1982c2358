from credo.cli import main

main()
