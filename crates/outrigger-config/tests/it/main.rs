//! The whole of `load`, on folders laid out as users have them.

#[cfg(test)]
mod layers;
#[cfg(test)]
mod pages;
#[cfg(test)]
mod plugins;
#[cfg(test)]
mod typed;
#[cfg(test)]
mod world;
