from snips.cli import main

main()
