//! What the module exports: `alloc` makes room for a request, `call` answers it and says how long the answer is, `out` says where it
//! is, `free` gives both back. One request at a time, as JavaScript has one thread.
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

/// Room for a request of so many bytes; it is written there before `call`.
#[unsafe(no_mangle)]
extern "C" fn alloc(length: usize) -> *mut u8 {
    DESK.with_borrow_mut(|desk| {
        desk.request.clear();
        desk.request.resize(length, 0);
        desk.request.as_mut_ptr()
    })
}

/// Answers the request that was written, and says how many bytes the answer has.
#[unsafe(no_mangle)]
extern "C" fn call() -> usize {
    DESK.with_borrow_mut(|desk| {
        let request = core::mem::take(&mut desk.request);
        desk.answer = desk.kernel.call(&request);
        desk.answer.len()
    })
}

/// Where the answer is, until the next call.
#[unsafe(no_mangle)]
extern "C" fn out() -> *const u8 {
    DESK.with_borrow(|desk| desk.answer.as_ptr())
}

/// Gives the room of request and answer back.
#[unsafe(no_mangle)]
extern "C" fn free() {
    DESK.with_borrow_mut(|desk| {
        desk.request = Vec::new();
        desk.answer = Vec::new();
    });
}
