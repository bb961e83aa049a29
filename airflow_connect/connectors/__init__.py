"""Layer 6: connectors, one folder each: keys (`keys`), their typed form (`config`), the connector itself."""
