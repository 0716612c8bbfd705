// What travels between the modules of the page, for readers and type checkers; nothing is loaded from here.

/**
 * Why there is no answer.
 *
 * @typedef {object} Reason
 * @property {number | string} [status] HTTP status; `ASKING` before an answer; none without a network
 * @property {string} [message] for people
 */

/**
 * What Airflow answered to one question of the page. It has both a value and a reason if the value is old.
 *
 * @template T
 * @typedef {object} Answer
 * @property {T} [value]
 * @property {number} [at] when it came, in milliseconds since 1970
 * @property {Reason} [reason]
 */

/**
 * A task instance as Airflow lists it, with what the page has learned of it.
 *
 * @typedef {object} Task
 * @property {string} id
 * @property {string} dag_id
 * @property {string} dag_run_id
 * @property {string} task_id
 * @property {number} map_index
 * @property {number} try_number
 * @property {string | null} state
 * @property {string} [operator]
 * @property {string} [start_date]
 * @property {string} [end_date]
 * @property {string} [run_after]
 * @property {{id?: number, classpath?: string} | null} [trigger]
 * @property {Record<string, any>} [rendered_fields]
 * @property {string} [reason] why its last try failed, as its log says
 * @property {string} [subject] what it asks of people
 * @property {string} [asked_at]
 */

/** @typedef {{dag_id: string, dag_run_id: string, state: string, queued_at?: string}} Run */
/** @typedef {{is_paused?: boolean, is_stale?: boolean, owners?: string[]}} Dag */
/** @typedef {{key: string, value: string}} Variable */

/**
 * The first rows of a list, and how many there are.
 *
 * @template T
 * @typedef {{rows: T[], total: number}} Listed
 */

/** @typedef {{task_instance: Task, subject: string, created_at: string}} Question */
/** @typedef {{task: Task, progress: Record<string, any> | null}} Campaign */
/** @typedef {Listed<Task> & {successes: Task[]}} Failures what failed, and what succeeded later */

/**
 * All that the page asks Airflow.
 *
 * @typedef {object} Answers
 * @property {Answer<Record<string, any>>} health
 * @property {Answer<Variable[]>} variables
 * @property {Answer<Listed<Task>>} sweeps the latest tasks that sweep
 * @property {Answer<Record<string, Answer<Dag>>>} dags
 * @property {Answer<Task[]>} tasks those of windows
 * @property {Answer<Run[]>} runs those of windows
 * @property {Answer<Failures>} failed
 * @property {Answer<Listed<Question>>} questions
 * @property {Answer<{rows: Campaign[], cut: boolean}>} campaigns
 * @property {Answer<Listed<Task>>} waits
 */

/**
 * Why a section shows no rows: brief for the headline, where an empty text is not mentioned; long for the
 * section.
 *
 * @typedef {{brief: string, text: string}} Problem
 */

/**
 * What a section shows.
 *
 * @template Row
 * @typedef {object} Section
 * @property {Problem | null} problem
 * @property {Row[]} rows
 * @property {string[]} notes what cannot be listed
 * @property {string[]} headline what the first line of the page says of it
 * @property {boolean} urgent whether somebody must act
 */

/** @typedef {Record<string, string>} Labels names of exports and organizations by id, from people */

export {};
