-- The table of people_from_warehouse.py: Noah has left, Liv was never to be invited, and one row has nobody.
CREATE TABLE people (email TEXT, level INTEGER, left_on TEXT);
INSERT INTO people VALUES ('adam.admin@example.com', 8, NULL), ('mina.member@example.com', 8, NULL),
    ('grace.analyst@example.com', NULL, NULL), ('ada@example.com', 1, NULL), (NULL, NULL, NULL),
    ('noah.newton@example.com', 1, '2026-10-31');
