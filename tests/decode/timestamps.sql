-- Random instants of PostgreSQL's whole range and the edges of it, each in several
-- time zones: those before about 1900 have offsets with seconds.
CREATE FUNCTION pg_temp.lines(zone text) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('timezone', zone, false);
    RETURN QUERY
        SELECT t::text || E'\t' || (extract(epoch FROM t) * 1000000)::numeric(30, 0)
        FROM instants ORDER BY t;
END $$;
SELECT setseed(0.5) \g /dev/null
CREATE TEMP TABLE instants AS
    SELECT timestamptz '4713-01-01 00:00:00+00 BC' + random() * interval '298988 years'
        + floor(random() * 1000000) * interval '1 microsecond' AS t
    FROM generate_series(1, 60)
    UNION ALL
    SELECT timestamptz '1800-01-01 00:00:00+00' + random() * interval '300 years'
    FROM generate_series(1, 60)
    UNION ALL
    SELECT timestamptz '1999-01-01 00:00:00+00' + floor(random() * 40000) * interval '6 hours'
    FROM generate_series(1, 20)
    UNION ALL
    VALUES (timestamptz '1970-01-01 00:00:00+00'), ('1969-12-31 23:59:59.999999+00'),
        ('2000-02-29 23:59:59.5+00'), ('1900-02-28 23:59:59+00'), ('0001-01-01 00:00:00+00'),
        ('0001-12-31 23:59:59.999999+00 BC'), ('0005-02-29 00:00:00+00 BC'),
        ('294276-12-31 12:00:00+00'), ('4713-12-31 00:00:00+00 BC'),
        ('1883-11-18 12:00:00 America/New_York');
SELECT pg_temp.lines(zone)
FROM unnest(ARRAY['UTC', 'America/New_York', 'Asia/Kathmandu', 'Africa/Monrovia']) zone;
