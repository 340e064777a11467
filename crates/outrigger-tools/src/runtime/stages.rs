//! The stages of a call, in order. None of them can be skipped (invariant 2).

use outrigger_kernel::hooks::HookInput;
use outrigger_kernel::hooks::points::tool::before_call;
use outrigger_protocol::canonical::CanonicalCall;
use outrigger_protocol::descriptor::ToolDescriptor;
use outrigger_protocol::hook::Block;
use outrigger_protocol::message::REFUSAL;
use outrigger_protocol::permission_names::EXTERNAL_DIRECTORY;
use outrigger_protocol::tool::ToolOutput;
use serde_json::{Map, Value, json};

use super::registry::Entry;
use super::result::{after, finish, limited};
use super::stage::{CallProgress, Stage};
use super::{ToolRuntime, attempt};
use crate::error::{Stop, ToolError};
use crate::host::{BY_RULE, HookVerdict, PermissionAsk, ToolContext};
use crate::routes::Bound;

/// How often the user is asked about a file that keeps changing.
const MAX_ASKED: usize = 3;

impl ToolRuntime {
    /// Runs a call from its lookup to the hooks after it. `input` is left as the hooks made it, for the record.
    pub(super) async fn stages(
        &self,
        entry: Option<Entry>,
        ctx: &ToolContext,
        progress: &CallProgress<'_>,
        input: &mut Value,
        fingerprint: &mut Option<String>,
    ) -> Result<ToolOutput, Stop> {
        let name = ctx.call.tool.as_str();
        let entry = entry.ok_or_else(|| ToolError::NotFound {
            tool: name.to_owned(),
            available: self.specs().into_iter().map(|s| s.name).collect(),
        })?;
        validate(&entry, input, ctx, progress)?;
        let requires_approval = before_call(&entry, input, ctx, progress).await?;

        // What is asked about is what runs: from here on nothing can change it.
        let input = &*input;
        let canonical = canonical(&entry, input)?;
        *fingerprint = Some(canonical.hex());
        progress.reached(&Stage::Canonical {
            fingerprint: canonical.fingerprint,
        });
        entry.tool.policy(input, ctx)?;
        let routes = self.routes();
        let (tool, undeclared) = (&entry.descriptor, entry.tool.is_undeclared());
        routes.passed_by(tool, undeclared, entry.tool.place(input), ctx)?;
        let bound = routes.bind(tool.declared.contract, input, ctx);
        let questions = || questions(&entry, input, &bound, requires_approval, ctx);
        let first = questions()?;
        // Before the questions, as in OpenCode: clients show the call's arguments in the question.
        ctx.host.started(input);
        if ask(first, &questions, ctx).await? {
            ctx.host.started(input);
        }
        progress.reached(&Stage::Decided);
        let recorded = ctx.host.record_intent(input).await;
        recorded.map_err(ToolError::failed)?;
        if let Some(contract) = bound.contract {
            progress.reached(&Stage::Routed {
                contract,
                provider: bound.name(),
                rule: bound.rule,
            });
        }
        let output = attempt::run(&entry, input, &canonical, &bound, &self.same, progress, ctx);
        let output = output.await.map_err(|error| Stop {
            error,
            metadata: ctx.reported().map(unrefused),
        })?;
        answers(&entry, name, &output, ctx.answer().as_ref())?;
        progress.reached(&Stage::Answered);
        let output = limited(finish(output, ctx), ctx);
        after(&entry.tool, ctx, input, output).await
    }
}

/// Checks that the arguments satisfy the schema, and that the caller was granted what the tool needs.
fn validate(
    entry: &Entry,
    input: &Value,
    ctx: &ToolContext,
    progress: &CallProgress<'_>,
) -> Result<(), ToolError> {
    progress.reached(&Stage::Found {
        version: &entry.descriptor.declared.version,
    });
    check(entry, input, &ctx.call.tool, false)?;
    entry.tool.precheck(input)?;
    progress.reached(&Stage::Validated);
    granted(entry, ctx)?;
    progress.reached(&Stage::Granted);
    alive(ctx)
}

/// Lets hooks refuse or change the call. Returns whether the call needs approval regardless of the rules.
async fn before_call(
    entry: &Entry,
    input: &mut Value,
    ctx: &ToolContext,
    progress: &CallProgress<'_>,
) -> Result<bool, Stop> {
    let name = ctx.call.tool.as_str();
    let asked = before_call::Input {
        tool: name,
        session_id: &ctx.call.session_id,
        call_id: &ctx.call.call_id,
    };
    let (point, payload) = asked.call(&before_call::Output { args: input });
    let verdict = ctx.host.hooks(point, payload).await;
    let requires_approval = verdict.requires_approval;
    let rewritten = rewrite(verdict, input).map_err(|block| blocked(*block, None))?;
    // Checked even if nothing changed the arguments visibly: it is cheap and leaves no way around (invariant 7).
    check(entry, input, name, rewritten)?;
    progress.reached(&Stage::Hooked { rewritten });
    alive(ctx)?;
    Ok(requires_approval)
}

/// Returns what the user must allow. If a hook requires approval and the tool asks nothing itself, the question is about
/// the call as such.
pub(super) fn questions(
    entry: &Entry,
    input: &Value,
    bound: &Bound,
    requires_approval: bool,
    ctx: &ToolContext,
) -> Result<Vec<PermissionAsk>, ToolError> {
    let mut questions = match bound.remote() {
        None => entry.tool.permissions(input, ctx)?,
        Some(_) => entry.tool.permissions_elsewhere(input, ctx)?,
    };
    if requires_approval
        && questions
            .iter()
            .all(|ask| ask.permission == EXTERNAL_DIRECTORY)
    {
        let name = &ctx.call.tool;
        questions.push(PermissionAsk {
            permission: name.clone(),
            patterns: vec!["*".to_owned()],
            metadata: json!({"tool": name, "input": input}),
            ..PermissionAsk::default()
        });
    }
    Ok(questions)
}

/// Asks the questions of a call. The user approves the diff that is shown: if the file has changed in the meantime, the
/// call is a different one, and its question is asked again. Returns whether the user was asked.
async fn ask(
    mut questions: Vec<PermissionAsk>,
    anew: impl Fn() -> Result<Vec<PermissionAsk>, ToolError>,
    ctx: &ToolContext,
) -> Result<bool, ToolError> {
    let mut somebody_asked = false;
    for _ in 0..MAX_ASKED {
        let mut somebody_read = false;
        for question in &questions {
            let decision = tokio::select! {
                decision = ctx.decision(question.clone()) => decision?,
                () = ctx.cancel.cancelled() => return Err(ToolError::Cancelled),
            };
            somebody_asked |= decision != BY_RULE;
            somebody_read |= decision != BY_RULE && question.metadata.get("diff").is_some();
        }
        if !somebody_read {
            return Ok(somebody_asked);
        }
        let mut now = anew()?;
        now.retain(|it| !questions.contains(it));
        if now.is_empty() {
            return Ok(somebody_asked);
        }
        questions = now;
    }
    Err(ToolError::failed(
        "The file changed each time while permission was asked for, so nothing was changed. Read it again.",
    ))
}

pub(super) fn check(
    entry: &Entry,
    input: &Value,
    name: &str,
    rewritten: bool,
) -> Result<(), ToolError> {
    let tool = name.to_owned();
    entry.schema.check(input).map_err(|reason| {
        if rewritten {
            ToolError::InvalidRewrite { tool, reason }
        } else {
            ToolError::InvalidInput { tool, reason }
        }
    })
}

pub(super) fn granted(entry: &Entry, ctx: &ToolContext) -> Result<(), ToolError> {
    let needs = &entry.descriptor.declared.capabilities;
    for grant in ctx.granted.iter().chain(entry.tool.grant()) {
        let missing: Vec<&'static str> = needs
            .iter()
            .filter(|it| !grant.capabilities.contains(it))
            .map(|it| it.name())
            .collect();
        if !missing.is_empty() {
            return Err(ToolError::NotGranted {
                tool: entry.descriptor.spec.name.clone(),
                missing,
                who: grant.who.clone(),
                how: grant.how.clone(),
            });
        }
    }
    Ok(())
}

fn canonical(entry: &Entry, input: &Value) -> Result<CanonicalCall, ToolError> {
    let ToolDescriptor { spec, declared } = &*entry.descriptor;
    CanonicalCall::of(&spec.name, &declared.version, input, &declared.capabilities).map_err(
        |malformed| ToolError::Malformed {
            tool: spec.name.clone(),
            reason: malformed.reason(),
        },
    )
}

/// Validates an answer. That of an MCP server is validated in the structured form, which accompanies the texts; any other
/// as its text.
fn answers(
    entry: &Entry,
    name: &str,
    output: &ToolOutput,
    own: Option<&Value>,
) -> Result<(), ToolError> {
    let Some(schema) = &entry.output else {
        return Ok(());
    };
    let own = own.filter(|own| own.get("content").is_some_and(Value::is_array));
    let checked = match own {
        None => schema.check(&output.output),
        Some(own) => match own.get("structuredContent").filter(|it| !it.is_null()) {
            Some(value) => schema.check_value(value),
            None => Err("it has no structured content".to_owned()),
        },
    };
    checked.map_err(|reason| ToolError::InvalidOutput {
        tool: name.to_owned(),
        reason,
    })
}

fn alive(ctx: &ToolContext) -> Result<(), ToolError> {
    if ctx.cancel.is_cancelled() {
        return Err(ToolError::Cancelled);
    }
    Ok(())
}

/// Returns metadata without a refusal: only a hook's is one, and a tool must not name a plugin for its own failure.
fn unrefused(mut metadata: Value) -> Value {
    if let Some(fields) = metadata.as_object_mut() {
        fields.remove(REFUSAL);
    }
    metadata
}

/// The text is the hook's own, as in OpenCode. Who refused, and a plugin's own code, are kept with the call, as `refusal`.
pub(super) fn blocked(block: Block, metadata: Option<Value>) -> Stop {
    let mut metadata = metadata.map(unrefused);
    let mut refusal = Map::new();
    if !block.code.starts_with("hook.") {
        refusal.insert("code".to_owned(), block.code.into());
        refusal.insert("details".to_owned(), block.details);
    }
    if let Some(plugin) = block.plugin {
        refusal.insert("plugin".to_owned(), plugin.into());
    }
    if !refusal.is_empty() {
        let fields = metadata.get_or_insert_with(|| json!({}));
        if let Some(fields) = fields.as_object_mut() {
            fields.insert(REFUSAL.to_owned(), refusal.into());
        }
    }
    Stop {
        error: ToolError::Blocked(block.message),
        metadata,
    }
}

// Replaces the arguments with those that the hooks returned; returns whether they differ. An output without `args` leaves
// them unchanged.
pub(super) fn rewrite(verdict: HookVerdict, input: &mut Value) -> Result<bool, Box<Block>> {
    if let Some(block) = verdict.block {
        return Err(Box::new(block));
    }
    let mut output = verdict.output;
    match output.get_mut("args").map(Value::take) {
        Some(args) if args != *input => {
            *input = args;
            Ok(true)
        }
        _ => Ok(false),
    }
}
