//! The store on real files, with real processes.

#[cfg(test)]
mod append;
#[cfg(test)]
mod crash;
#[cfg(test)]
mod damage;
#[cfg(test)]
mod filter;
#[cfg(test)]
mod project;
#[cfg(test)]
mod support;
#[cfg(test)]
mod usage;
