"""The file source: lines of files to topics, configured as Kafka Connect's FileStreamSource is.

How a run goes: the driver lists the files (`listing`, `places`), brings committed offsets and files together
(`offsets`, `rotation`, `takeover`), freezes what each task reads (`work`), and the tasks read it (`task`): bytes
(`content`) become lines (`lines`, `line_reader`), lines events (`events`), events values (`values`, `patterns`).
"""
