from strata_cli.cli import main

main()
