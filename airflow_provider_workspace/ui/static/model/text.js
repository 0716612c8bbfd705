// Texts and numbers for people.

// As api/levels.py names them.
const LEVELS = new Map([[1, "member"], [8, "admin"], [15, "owner"]]);
const MINUTE = 60000;
// A time in a message: its day and its minute.
const TIME = /\b(\d{4}-\d{2}-\d{2})T(\d{2}:\d{2}):\d{2}(?:\.\d+)?Z/g;

/**
 * Parse JSON; what is no text was parsed before, such as XComs by some releases of Airflow.
 *
 * @param {any} value
 * @returns {any} null if it is no JSON
 */
export function parsed(value) {
  if (typeof value !== "string") return value ?? null;
  try {
    return JSON.parse(value);
  } catch {
    return null;
  }
}

/**
 * Return a mapping as it is, and no mapping as an empty one.
 *
 * @param {any} value
 * @returns {Record<string, any>}
 */
export function mappingOf(value) {
  return isMapping(value) ? value : {};
}

/** @param {any} value */
export function isMapping(value) {
  return value instanceof Object && !Array.isArray(value);
}

/**
 * Return a message with its times as people read them.
 *
 * @param {string} text
 */
export function withTimes(text) {
  return text.replace(TIME, "$1 $2 UTC");
}

/**
 * @param {any} value text, or what is shown as JSON; of a list its values
 * @param {number} most characters
 */
export function shorten(value, most = 120) {
  if (Array.isArray(value)) return shorten(value.map((one) => shorten(one, most)).join(", "), most);
  const text = withTimes(typeof value === "string" ? value : JSON.stringify(value) ?? "");
  return text.length > most ? `${text.slice(0, most)} …` : text;
}

/** @param {number} milliseconds also negative ones */
export function duration(milliseconds) {
  const minutes = Math.floor(Math.abs(milliseconds) / MINUTE);
  if (minutes < 1) return "under 1 min";
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return `${hours} h ${minutes % 60} min`;
  return `${Math.floor(hours / 24)} days`;
}

/** @param {number | null | undefined} level of a member; none for no access */
export function levelName(level) {
  if (level === null || level === undefined) return "removed";
  const name = LEVELS.get(level);
  return name ? `${name} (${level})` : `level ${level}`;
}

/**
 * @param {number} number
 * @param {string} one
 */
export function counted(number, one) {
  return number === 1 ? `1 ${one}` : `${number} ${one}s`;
}

/**
 * Sort values into groups by a key, in the order of the values. Not every browser has Map.groupBy.
 *
 * @template Value
 * @param {Iterable<Value>} values
 * @param {(value: Value) => string} keyOf
 * @returns {Map<string, Value[]>}
 */
export function groupBy(values, keyOf) {
  const groups = new Map();
  for (const value of values) {
    const key = keyOf(value);
    const group = groups.get(key);
    if (group) group.push(value);
    else groups.set(key, [value]);
  }
  return groups;
}
