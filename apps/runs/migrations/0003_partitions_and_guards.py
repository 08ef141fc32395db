"""Month partitions for logs and items, and the trigger that keeps terminal states terminal."""

from django.db import migrations

FORWARD = """
CREATE TABLE runs_logchunk (
    month date NOT NULL,
    run_id bigint NOT NULL,
    first_line bigint NOT NULL,
    last_line bigint NOT NULL,
    attempt integer NOT NULL,
    levels jsonb NOT NULL,
    first_at timestamptz NOT NULL,
    last_at timestamptz NOT NULL,
    raw_bytes integer NOT NULL,
    content bytea NOT NULL,
    PRIMARY KEY (month, run_id, first_line)
) PARTITION BY RANGE (month);
-- The chunks are packed by us: a second packing by TOAST only costs time.
ALTER TABLE runs_logchunk ALTER COLUMN content SET STORAGE EXTERNAL;
CREATE TABLE runs_logchunk_rest PARTITION OF runs_logchunk DEFAULT;

CREATE TABLE runs_item (
    month date NOT NULL,
    run_id bigint NOT NULL,
    seq bigint NOT NULL,
    attempt integer NOT NULL,
    dataset_id bigint NOT NULL,
    created_at timestamptz NOT NULL,
    data jsonb NOT NULL,
    PRIMARY KEY (month, run_id, seq)
) PARTITION BY RANGE (month);
CREATE INDEX item_by_dataset ON runs_item (dataset_id, created_at DESC, run_id DESC, seq DESC);
CREATE TABLE runs_item_rest PARTITION OF runs_item DEFAULT;

CREATE FUNCTION claw_keep_partitions(day date) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    first date := date_trunc('month', day)::date;
    parent text;
    child text;
BEGIN
    -- Two beats may come at once; the second finds everything there.
    PERFORM pg_advisory_xact_lock(hashtext('claw_keep_partitions'));
    FOREACH parent IN ARRAY ARRAY['runs_logchunk', 'runs_item'] LOOP
        child := parent || to_char(first, '"_y"YYYY"m"MM');
        IF to_regclass(child) IS NULL THEN
            EXECUTE format('CREATE TABLE %I PARTITION OF %I FOR VALUES FROM (%L) TO (%L)',
                           child, parent, first, (first + interval '1 month')::date);
        END IF;
    END LOOP;
END $$;
SELECT claw_keep_partitions(current_date);
SELECT claw_keep_partitions((current_date + interval '1 month')::date);

CREATE FUNCTION claw_run_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.state IN ('succeeded', 'failed', 'timed_out', 'canceled', 'lost', 'skipped')
       AND NEW.state IS DISTINCT FROM OLD.state THEN
        RAISE EXCEPTION 'run % is % and stays so', OLD.id, OLD.state USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER claw_run_guard BEFORE UPDATE OF state ON runs_run FOR EACH ROW EXECUTE FUNCTION claw_run_guard();
"""

BACKWARD = """
DROP TRIGGER claw_run_guard ON runs_run;
DROP FUNCTION claw_run_guard();
DROP FUNCTION claw_keep_partitions(date);
DROP TABLE runs_item;
DROP TABLE runs_logchunk;
"""


class Migration(migrations.Migration):
    dependencies = [("runs", "0002_initial")]
    operations = [migrations.RunSQL(FORWARD, BACKWARD)]
