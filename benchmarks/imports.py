"""Print, as a JSON list, which of the packages given as arguments `ultracluster validate` imports for prod.yaml."""

import contextlib
import io
import json
import sys

from ultracluster.cli import main

heavy = sys.argv[1:]
sys.argv = ["ultracluster", "validate", "environments/prod.yaml"]
with contextlib.redirect_stdout(io.TextIOWrapper(io.BytesIO())), contextlib.suppress(SystemExit):
    main()
print(json.dumps([name for name in heavy if name in sys.modules]))
