//! Exports of the module: `alloc` allocates a request, `call` answers it and returns the length of the answer, `out` returns its
//! address, `free` releases both. One request at a time, because JavaScript has one thread.
#![expect(
    unsafe_code,
    reason = "an exported name is an attribute that counts as unsafe; there is no unsafe block"
)]

use std::cell::RefCell;

use crate::Kernel;

#[derive(Default)]
struct Desk {
    kernel: Kernel,
    request: Vec<u8>,
    answer: Vec<u8>,
}

thread_local! {
    static DESK: RefCell<Desk> = RefCell::default();
}

/// Allocates a request of this size; the host writes it there before `call`.
#[unsafe(no_mangle)]
extern "C" fn alloc(length: usize) -> *mut u8 {
    DESK.with_borrow_mut(|desk| {
        desk.request.clear();
        desk.request.resize(length, 0);
        desk.request.as_mut_ptr()
    })
}

/// Answers the request; returns the size of the answer in bytes.
#[unsafe(no_mangle)]
extern "C" fn call() -> usize {
    DESK.with_borrow_mut(|desk| {
        let request = core::mem::take(&mut desk.request);
        desk.answer = desk.kernel.call(&request);
        desk.answer.len()
    })
}

/// Returns the address of the answer, valid until the next call.
#[unsafe(no_mangle)]
extern "C" fn out() -> *const u8 {
    DESK.with_borrow(|desk| desk.answer.as_ptr())
}

/// Releases request and answer.
#[unsafe(no_mangle)]
extern "C" fn free() {
    DESK.with_borrow_mut(|desk| {
        desk.request = Vec::new();
        desk.answer = Vec::new();
    });
}
