# Short names for what is done every day. The tools come from .venv (made by deploy/test or `make venv`).
BIN := .venv/bin

.PHONY: venv check fast fix lock messages chaos bench up test

venv:            ## the virtual environment with everything tests and checks need
	@root=$(CURDIR); . deploy/venv.sh; make_venv requirements-dev.txt

check:           ## all static checks
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/mypy apps clawpanel
	$(BIN)/typos
	$(BIN)/djlint --lint --quiet --profile=django templates
	$(BIN)/python manage.py makemigrations --check --dry-run

fast:            ## the tests without containers, browser and broken processes
	$(BIN)/pytest -q -m "not docker and not browser and not chaos" --ignore=tests/bench

fix:             ## what the tools can put right themselves
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/djade --target-version 5.2 $$(find templates -name '*.html')

lock:            ## requirements*.txt anew from requirements*.in, for Python 3.11 to 3.13
	$(BIN)/uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --quiet requirements.in -o requirements.txt
	$(BIN)/uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --quiet requirements-dev.in -o requirements-dev.txt

messages:        ## collect and compile the translations
	$(BIN)/python manage.py makemessages -l zh_Hans --no-location -i .venv -i var -i spider_repo
	$(BIN)/python manage.py compilemessages -l zh_Hans

chaos:           ## an hour of storms (CLAW_CHAOS_SEED=1,2,3 CLAW_CHAOS_SECONDS=1200), and the tests that kill processes
	CLAW_CHAOS_SECONDS=$${CLAW_CHAOS_SECONDS:-1200} CLAW_CHAOS_SEED=$${CLAW_CHAOS_SEED:-$$(shuf -i 1-999999 -n 3 | paste -sd,)} \
		$(BIN)/pytest -q -m chaos

bench:           ## the speed table of the README, for both executors
	$(BIN)/python -m tests.bench docker; $(BIN)/python -m tests.bench process

up:
	deploy/up

test:
	deploy/test
