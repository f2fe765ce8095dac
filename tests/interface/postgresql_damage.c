/// What SQL cannot do in tests of the extension of PostgreSQL: hand damaged and foreign states to it, and
/// take away memory.
#include <postgres.h>
// The headers of PostgreSQL need the one above.
#include <fmgr.h>
#include <sys/resource.h>
#include <utils/guc.h>

PG_MODULE_MAGIC;
PG_FUNCTION_INFO_V1(samesum_damage);
PG_FUNCTION_INFO_V1(samesum_limit_memory);

/// Calls samesum_<kind>_<verb>, where a setting is the kind.
static Datum call(FunctionCallInfo outer, const char* setting, const char* verb, Datum argument) {
  char* name = psprintf("samesum_%s_%s", GetConfigOption(setting, false, false), verb);
  PGFunction function = load_external_function("$libdir/samesum", name, true, NULL);
  LOCAL_FCINFO(info, 2);
  InitFunctionCallInfoData(*info, NULL, 2, InvalidOid, outer->context, NULL);
  info->args[0].value = argument;
  info->args[0].isnull = info->args[1].isnull = false;
  return function(info);
}

/// Final function. Settings say what it does.
///
/// Serialises a state of the kind samesum_damage.source, and deserialises it as one of samesum_damage.target.
/// Between, changes bit samesum_damage.change of the bytes; if there are n bits, n + k leaves only the first
/// k bytes.
/// @return the number of bytes; -1 if the state serialises to other bytes then.
Datum samesum_damage(PG_FUNCTION_ARGS) {
  bytea* bytes = DatumGetByteaP(call(fcinfo, "samesum_damage.source", "serialise", PG_GETARG_DATUM(0)));
  const int change = atoi(GetConfigOption("samesum_damage.change", false, false));
  const int size = (int)VARSIZE(bytes) - VARHDRSZ;
  if (change >= 8 * size)
    SET_VARSIZE(bytes, VARHDRSZ + change - 8 * size);
  else if (change >= 0)
    VARDATA(bytes)[change / 8] ^= (char)(1 << (change % 8));
  const Datum state = call(fcinfo, "samesum_damage.target", "deserialise", PointerGetDatum(bytes));
  const bytea* again = DatumGetByteaP(call(fcinfo, "samesum_damage.target", "serialise", state));
  PG_RETURN_INT32(VARSIZE(again) == VARSIZE(bytes) && memcmp(again, bytes, VARSIZE(bytes)) == 0 ? size : -1);
}

/// Limits the address space of the backend, in bytes.
Datum samesum_limit_memory(PG_FUNCTION_ARGS) {
  struct rlimit limit;
  getrlimit(RLIMIT_AS, &limit);
  limit.rlim_cur = PG_GETARG_INT64(0) < 0 ? limit.rlim_max : (rlim_t)PG_GETARG_INT64(0);
  PG_RETURN_BOOL(setrlimit(RLIMIT_AS, &limit) == 0);
}
