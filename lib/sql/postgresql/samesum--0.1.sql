-- Functions and aggregates of the extension. lib/sql/README.md describes them.
\echo Use "CREATE EXTENSION samesum" to load this file. \quit

-- Sums of integers and of numeric are PostgreSQL's own, which are exact. They are numeric, so that none overflows.
CREATE AGGREGATE exact_sum(int2) (
  SFUNC = int2_accum, STYPE = internal, SSPACE = 48, FINALFUNC = numeric_poly_sum, COMBINEFUNC = numeric_poly_combine,
  SERIALFUNC = numeric_poly_serialize, DESERIALFUNC = numeric_poly_deserialize, PARALLEL = SAFE,
  MSFUNC = int2_accum, MINVFUNC = int2_accum_inv, MSTYPE = internal, MSSPACE = 48, MFINALFUNC = numeric_poly_sum);
CREATE AGGREGATE exact_sum(int4) (
  SFUNC = int4_accum, STYPE = internal, SSPACE = 48, FINALFUNC = numeric_poly_sum, COMBINEFUNC = numeric_poly_combine,
  SERIALFUNC = numeric_poly_serialize, DESERIALFUNC = numeric_poly_deserialize, PARALLEL = SAFE,
  MSFUNC = int4_accum, MINVFUNC = int4_accum_inv, MSTYPE = internal, MSSPACE = 48, MFINALFUNC = numeric_poly_sum);
CREATE AGGREGATE exact_sum(int8) (
  SFUNC = int8_avg_accum, STYPE = internal, SSPACE = 48, FINALFUNC = numeric_poly_sum, COMBINEFUNC = int8_avg_combine,
  SERIALFUNC = int8_avg_serialize, DESERIALFUNC = int8_avg_deserialize, PARALLEL = SAFE,
  MSFUNC = int8_avg_accum, MINVFUNC = int8_avg_accum_inv, MSTYPE = internal, MSSPACE = 48,
  MFINALFUNC = numeric_poly_sum);
CREATE AGGREGATE exact_sum(numeric) (
  SFUNC = numeric_avg_accum, STYPE = internal, SSPACE = 128, FINALFUNC = numeric_sum,
  COMBINEFUNC = numeric_avg_combine, SERIALFUNC = numeric_avg_serialize, DESERIALFUNC = numeric_avg_deserialize,
  PARALLEL = SAFE, MSFUNC = numeric_avg_accum, MINVFUNC = numeric_accum_inv, MSTYPE = internal, MSSPACE = 128,
  MFINALFUNC = numeric_sum);

CREATE FUNCTION samesum_refuse_numeric(float8, "any") RETURNS float8
  LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME';
CREATE FUNCTION samesum_refuse_numeric(float8, "any", "any") RETURNS float8
  LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME';

-- All others have the states of the library. Each has an overload for every type that a cast to float8 would round.
DO $samesum$
DECLARE
  state record;
  types record;
  name text;
  arguments text;
BEGIN
  FOR state IN SELECT * FROM (VALUES
    ('sum', 32, '{real, integer}'::text[], '{sum, avg}'::text[]),
    ('moments', 72, '{real, integer}', '{var_samp, var_pop, stddev_samp, stddev_pop}'),
    ('products', 40, '{reals, integers, real_integer, integer_real}', '{dot}'),
    ('comoments', 184, '{reals, integers, real_integer, integer_real}', '{covar_samp, covar_pop, corr}'))
    AS states(kind, bytes, types, names)
  LOOP
    EXECUTE format($$
      CREATE FUNCTION samesum_%1$s_combine(internal, internal) RETURNS internal
        LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME';
      CREATE FUNCTION samesum_%1$s_serialise(internal) RETURNS bytea
        LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME';
      CREATE FUNCTION samesum_%1$s_deserialise(bytea, internal) RETURNS internal
        LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME'$$, state.kind);
    FOREACH name IN ARRAY state.names LOOP
      EXECUTE format($$
        CREATE FUNCTION samesum_%s(internal) RETURNS float8
          LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME'$$, name);
    END LOOP;

    FOR types IN SELECT * FROM (VALUES
      ('real', 'float8'), ('integer', 'int8'), ('reals', 'float8, float8'), ('integers', 'int8, int8'),
      ('real_integer', 'float8, int8'), ('integer_real', 'int8, float8')) AS all_types(name, arguments)
      WHERE all_types.name = ANY (state.types)
    LOOP
      EXECUTE format($$
        CREATE FUNCTION samesum_%1$s_add_%2$s(internal, %3$s) RETURNS internal
          LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME';
        CREATE FUNCTION samesum_%1$s_subtract_%2$s(internal, %3$s) RETURNS internal
          LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME'$$, state.kind, types.name, types.arguments);
      FOREACH name IN ARRAY state.names LOOP
        CONTINUE WHEN name = 'sum' AND types.arguments = 'int8';
        EXECUTE format($$
          CREATE AGGREGATE exact_%1$s(%2$s) (
            SFUNC = samesum_%3$s_add_%4$s, STYPE = internal, SSPACE = %5$s, FINALFUNC = samesum_%1$s,
            COMBINEFUNC = samesum_%3$s_combine, SERIALFUNC = samesum_%3$s_serialise,
            DESERIALFUNC = samesum_%3$s_deserialise, PARALLEL = SAFE,
            MSFUNC = samesum_%3$s_add_%4$s, MINVFUNC = samesum_%3$s_subtract_%4$s, MSTYPE = internal,
            MSSPACE = %5$s, MFINALFUNC = samesum_%1$s)$$,
          name, types.arguments, state.kind, types.name, state.bytes);
      END LOOP;
    END LOOP;

    FOREACH name IN ARRAY state.names LOOP
      CONTINUE WHEN name = 'sum';
      FOREACH arguments IN ARRAY CASE WHEN 'real' = ANY (state.types) THEN '{numeric}'::text[]
        ELSE ARRAY['numeric, numeric', 'numeric, float8', 'float8, numeric', 'numeric, int8', 'int8, numeric'] END
      LOOP
        EXECUTE format($$
          CREATE AGGREGATE exact_%s(%s) (SFUNC = samesum_refuse_numeric, STYPE = float8, PARALLEL = SAFE)$$,
          name, arguments);
      END LOOP;
    END LOOP;
  END LOOP;
END
$samesum$;
