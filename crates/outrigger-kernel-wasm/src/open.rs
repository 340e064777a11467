//! Objects with a number, from opening to closing.

/// The open objects of a kind; there are few at a time.
pub(crate) struct Open<T> {
    last: u32,
    all: Vec<(u32, T)>,
}

impl<T> Default for Open<T> {
    fn default() -> Self {
        Self {
            last: 0,
            all: Vec::new(),
        }
    }
}

impl<T> Open<T> {
    /// Opens an object and returns its number, which is not reused.
    pub(crate) fn insert(&mut self, it: T) -> u32 {
        self.last += 1;
        self.all.push((self.last, it));
        self.last
    }

    pub(crate) fn get(&self, number: u32) -> Option<&T> {
        let mut all = self.all.iter();
        all.find(|(known, _)| *known == number).map(|(_, it)| it)
    }

    pub(crate) fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        let mut all = self.all.iter_mut();
        all.find(|(known, _)| *known == number).map(|(_, it)| it)
    }

    pub(crate) fn close(&mut self, number: u32) {
        self.all.retain(|(known, _)| *known != number);
    }
}
