"""Indexes by which a claim steps over all runs that wait for the same thing at once.

The shape of a run stands for what it asks of nodes and pools. It is a hash, for an index entry must be short.
"""

from django.db import migrations

FORWARD = """
CREATE FUNCTION claw_run_shape(spider_id bigint, memory_bytes bigint, cpus float8, pools bigint[], selector jsonb)
RETURNS bigint LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    -- Of these only the hashes of numbers heed their seed always: an empty array hashes to the same with any.
    SELECT hashint8extended(spider_id, hashint8extended(memory_bytes, hashfloat8extended(cpus,
           hash_array_extended(pools, 0) # jsonb_hash_extended(selector, 0))))
$$;
CREATE INDEX run_queue_shape ON runs_run
    (project_id, priority, claw_run_shape(spider_id, memory_bytes, cpus, pools, selector), queued_at, id)
    WHERE state = 'queued';
CREATE INDEX run_queue_job ON runs_run
    (project_id, priority, claw_run_shape(spider_id, memory_bytes, cpus, pools, selector),
     (coalesce(job_id, 0) * 65536 + coalesce(job_limit, 0)), queued_at, id)
    WHERE state = 'queued';
"""

BACKWARD = """
DROP INDEX run_queue_job;
DROP INDEX run_queue_shape;
DROP FUNCTION claw_run_shape(bigint, bigint, float8, bigint[], jsonb);
"""


class Migration(migrations.Migration):
    dependencies = [("runs", "0004_fault_tolerance")]
    operations = [migrations.RunSQL(FORWARD, BACKWARD)]
