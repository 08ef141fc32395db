"""The rules of time: cron, intervals, single dates, and words for them. Pure: nothing here reads the database."""
