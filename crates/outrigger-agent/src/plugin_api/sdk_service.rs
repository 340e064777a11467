//! Answers to requests of plugins' SDK clients.

use futures_util::future::BoxFuture;
use outrigger_js::SdkAnswer;
use outrigger_protocol::rpc::SdkRequest;

/// Answers the requests of plugins' SDK clients. The server implements it with the router that clients reach over TCP;
/// the agent only passes requests on.
pub trait SdkService: Send + Sync {
    /// Answers one request. An endless body is streamed.
    fn call(&self, request: SdkRequest) -> BoxFuture<'static, SdkAnswer>;
}
