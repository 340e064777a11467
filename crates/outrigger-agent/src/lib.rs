//! Sessions: carries out the effects of a turn, subagents, commands, instructions, event bus.
