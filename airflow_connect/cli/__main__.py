"""`python -m airflow_connect.cli`, if the console script is not on the PATH."""

import sys

from airflow_connect.cli.main import main

sys.exit(main())
