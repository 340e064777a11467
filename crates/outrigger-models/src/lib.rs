//! Model providers at wire level, the catalog of limits and prices, and cassettes.
