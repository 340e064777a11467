//! Answers to requests of plugins' SDK clients.

use futures_util::future::BoxFuture;
use outrigger_js::SdkAnswer;
use outrigger_protocol::rpc::SdkRequest;

/// Answers the requests of plugins' SDK clients. The server implements it with the router that clients reach over TCP;
/// the agent only passes requests on.
pub trait SdkService: Send + Sync {
    /// Counts what a request would store. One over a limit is refused with this answer and not recorded: its plugin may repeat it
    /// as often as it likes.
    fn admit<'a>(&'a self, request: &'a SdkRequest) -> BoxFuture<'a, Result<(), SdkAnswer>>;
    /// Answers one request. An endless body is streamed.
    fn call(&self, request: SdkRequest) -> BoxFuture<'static, SdkAnswer>;
}
