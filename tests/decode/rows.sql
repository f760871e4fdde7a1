-- What is recorded: transactions over the tables of schema.sql.
INSERT INTO outbox_events (aggregate_type, aggregate_id, event_type, payload) VALUES
    ('order', '1', 'OrderPlaced', '{"total": 19.99, "lines": [{"sku": "A-1", "qty": 2}]}'),
    ('order', E'q"\'\\ \t\x01\x7f é 😀 \u2028 \uFFFF', 'Odd', '{"s": "\u0001\"\\/😀"}'),
    ('order', '', '', NULL),
    ('order', 'null', 'null', 'null'),
    ('order', '3', 'Deep', '[[[[{"a": [1, 1.10, 1e400, true, null, "\""]}]]]]');
BEGIN;
INSERT INTO outbox_events (aggregate_type, aggregate_id, event_type, payload)
    SELECT 'customer', 'c' || n, 'Created', jsonb_build_object('n', n, 'text', repeat('x"\', n))
    FROM generate_series(1, 12) n;
SAVEPOINT one;
INSERT INTO no_key VALUES (0, 'rolled back');
ROLLBACK TO one;
INSERT INTO no_key VALUES (1, 'kept');
COMMIT;

INSERT INTO numbers VALUES
    (1, 2, 3, 4.50, 5, 6.5, 7.25, 8, '9.99', true, 'x', '[1,5)', 10),
    (-32768, -2147483648, -9223372036854775808, -0.000001, -99999999999999.999999,
     -3.4028235e38, -1.7976931348623157e308, 4294967295, '-1.00', false, '"', 'empty', -1.5),
    (32767, 2147483647, 9007199254740993,
     123456789012345678901234567890.123456789012345678901234567890, 0.1, '-0', '-0', 0,
     '$1,234.56', NULL, '\', '(,)', 0),
    (0, 0, 0, 'NaN', 'NaN', 'NaN', 'NaN', 0, '0', true, 'é', '[,3]', 'NaN'),
    (0, 0, 0, 'Infinity', 0, 'Infinity', '-Infinity', 0, '0', true, '', '[1,]', 0),
    (0, 0, 0, 1e300, 0, 1e-30, 5e-324, 0, '0', true, ' ', NULL, 0),
    (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);

INSERT INTO texts VALUES
    ('plain', 'v', 'c', 'CiText', 'name', '{ "b":1.10,  "a":2, "a":3, "x":"a\u0000b" }',
     '{"b": 1.10, "a": 3}', '<a b="c">&amp;</a>', 'x@y', '\xdeadbeef5c22', '\x00ff',
     B'1010', B'1', '10.0.0.0/8', '08:00:2b:01:02:03', 'a:1A fat:2', 'a=>"b\"c", d=>NULL',
     'ha"ppy', '(1,"a""b\\c",2.50)', '16/B374D848', 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'),
    ('', '', '', '', '', 'null', 'null', '', '@', '', '', B'0000', B'', '::1',
     'ff:ff:ff:ff:ff:ff', '', '', 'it''s ok', '(,,)', '0/0', NULL),
    ((SELECT string_agg(chr(n), '') FROM generate_series(1, 300) n), E'\u2028\u2029', E'\t',
     'é', E'\x7f', '[1e400, -0, 123456789012345678901234567890.123]', '"\\u0041\""', NULL,
     E'\\u0041@\\', decode(repeat('00', 300), 'hex'), '\x5c78', NULL, NULL, NULL, NULL, NULL,
     NULL, E'very\\happy', '(1,"",)', NULL, NULL),
    (repeat('é', 7) || '"', repeat('\', 29), '"', '\"', '😀', '"\""', '"😀"', NULL, 'a@"',
     E'\\x22', E'\\x', NULL, NULL, NULL, NULL, NULL, NULL, 'sad', NULL, NULL, NULL),
    (repeat('0123456789abcdef', 600), repeat('x', 30), 'x', repeat('q"', 100), 'n', NULL,
     NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);

INSERT INTO times VALUES
    ('2026-11-30', '09:15:02.114', '09:15:02+05:30', '2026-11-30 09:15:02.114523',
     '1883-11-18 12:00 America/New_York', '1 year 2 mons -3 days 04:05:06.7', '[2026-01-01,)'),
    ('infinity', '24:00', '00:00-15:59', '-infinity', 'infinity', '-1 day', NULL),
    ('0044-03-15 BC', '00:00', NULL, '4713-01-01 00:00 BC', '0044-03-15 10:00 BC', '0', NULL),
    ('5874897-12-31', NULL, NULL, '294276-12-31 23:59:59.999999', '294276-12-31', NULL, NULL);

INSERT INTO arrays VALUES
    ('{1,NULL,3}', '{"a,b","c\"d","e\\f",NULL,"null",""}', '{{1.10,2},{3,4}}', '{sad,"ha\"ppy"}',
     ARRAY['(1,"a""b",2)'::point3], '{"\\xdead","\\x"}', ARRAY['{"a":"b"}', '[1]']::jsonb[],
     '{t,f,NULL}'),
    ('{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}'),
    ('[0:1]={1,2}', NULL, NULL, NULL, NULL, NULL, NULL, NULL);

INSERT INTO generated VALUES (21);
INSERT INTO no_columns DEFAULT VALUES;
INSERT INTO "Sales Dept"."we""ird\table.v2" VALUES (1, 'a'), (2, NULL);
INSERT INTO quoted_types VALUES ('a', 'a"', 'a', 'a', 'a', 'a', 'a', 'a', 'x),"', '"}'),
    (NULL, 'b', NULL, 'a', NULL, 'a', NULL, 'a', NULL, NULL);
INSERT INTO quoted_arrays VALUES ('{a}', '{"a\""}', '{a}', '{a,a}', '{}');

-- Columns come and go between two rows of one transaction.
BEGIN;
INSERT INTO no_key VALUES (1, 'a');
ALTER TABLE no_key ADD trace text DEFAULT 'd';
INSERT INTO no_key VALUES (2, 'b');
ALTER TABLE no_key DROP COLUMN a;
INSERT INTO no_key VALUES ('c', 'e');
COMMIT;

BEGIN;
SELECT pg_logical_emit_message(true, 'a "prefix"', 'hi "there" \ é 😀');
INSERT INTO full_identity VALUES (1, 'x');
SELECT pg_logical_emit_message(false, 'now', E'line\nbreak');
ROLLBACK;
SELECT pg_logical_emit_message(true, 'x', '{"action":"I"}');
SELECT pg_logical_emit_message(false, '', '');
SELECT pg_logical_emit_message(true, 'binary', '\x0001ff'::bytea);

INSERT INTO full_identity VALUES (1, 'x'), (2, 'y');
UPDATE full_identity SET b = 'z"' WHERE a = 1;
DELETE FROM full_identity WHERE a = 2;
UPDATE outbox_events SET processed_at = now() WHERE aggregate_id = '1';
UPDATE "Sales Dept"."we""ird\table.v2" SET "col""umn\" = 3 WHERE "col""umn\" = 1;
DELETE FROM outbox_events WHERE aggregate_id = '1';
TRUNCATE full_identity, generated;
