"""Floor 4: connectors, one folder each. A folder has the keys (`keys`), their typed form (`config`) and the connector."""
