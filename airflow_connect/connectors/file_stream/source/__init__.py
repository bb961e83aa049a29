"""The file source: lines of files to topics, configured as Kafka Connect's FileStreamSource is.

How a run works: the driver lists the files (`discover/listing`), reconciles them with the committed offsets
(`offsets/reconciliation`, `offsets/takeover`) and freezes what each task reads (`work`). The tasks then read it
(`task`): bytes (`read/content`) become lines (`read/lines`, `read/line_reader`), lines become events (`read/events`),
and events become values (`parse`).
"""
