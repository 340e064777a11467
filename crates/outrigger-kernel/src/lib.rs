//! Pure decisions: turn machine, hook points and chains, permission rules, policy guard, message merger.
