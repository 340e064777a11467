//! The one way to run a tool (invariant 2): bundled, plugin, MCP and subagent tools all go through [`ToolRuntime::execute`],
//! so hooks, permission questions, limits and the record cannot be missed.

mod attempt;
mod failed;
mod result;
mod told;

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use futures_util::FutureExt as _;
use outrigger_kernel::hooks::HookInput;
use outrigger_kernel::hooks::points::tool::before_call;
use outrigger_protocol::Millis;
use outrigger_protocol::canonical::CanonicalCall;
use outrigger_protocol::descriptor::{Constraints, Declared, ToolDescriptor};
use outrigger_protocol::hook::Block;
use outrigger_protocol::log::ToolAudit;
use outrigger_protocol::log::ToolRecord;
use outrigger_protocol::provenance::Provenance;
use outrigger_protocol::tool::{ToolCall, ToolOutcome, ToolOutput, ToolSpec};
use serde_json::{Value, json};

use self::attempt::Same;
pub use self::failed::with_context;
use self::result::{after, finish, limited};
use self::told::Told;
pub use self::told::{Listener, Stage};
use crate::error::{Stop, ToolError};
use crate::host::{HookVerdict, PermissionAsk, ToolContext};
use crate::routes::Routes;
use crate::schema::{OutputSchema, Schema};
use crate::tool::Tool;

/// What is told of a call that ended in a panic of ours.
pub const DEFECT: &str = "the tool call ended in a panic; this is a defect of Outrigger";
/// The permission whose question is about a folder, not about the call.
const ELSEWHERE: &str = "external_directory";

#[derive(Clone)]
struct Entry {
    tool: Arc<dyn Tool>,
    schema: Arc<Schema>,
    output: Option<Arc<OutputSchema>>,
    descriptor: Arc<ToolDescriptor>,
    /// It opens files through the path guard alone.
    rooted: bool,
    /// Roots beside those of the descriptor.
    held: Vec<Vec<String>>,
}

/// The tools that there are, in registry order, and the way to run them.
#[derive(Default)]
pub struct ToolRuntime {
    entries: RwLock<Vec<Entry>>,
    routes: RwLock<Arc<Routes>>,
    listeners: RwLock<Arc<Vec<Listener>>>,
    same: Same,
}

/// Proof that a call went through the runtime. It cannot be built elsewhere.
#[derive(Clone, Debug)]
pub struct Executed {
    /// How it ended.
    pub outcome: ToolOutcome,
    /// How it went.
    pub record: ToolRecord,
    _seal: Seal,
}

#[derive(Clone, Debug)]
struct Seal;

impl ToolRuntime {
    /// A runtime without tools; see [`crate::builtin::register_all`].
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a tool. One of the same name takes the place of the earlier one (the reference's rule: a plugin's `bash` replaces ours
    /// and keeps its place in the order).
    ///
    /// # Errors
    /// [`ToolError::BadSchema`] when the parameters are not a JSON Schema that can be checked here,
    /// [`ToolError::BadDescriptor`] when what it declares cannot be right (D6).
    pub fn register(&self, tool: Arc<dyn Tool>) -> Result<(), ToolError> {
        let declared = tool.declares();
        self.register_as(tool, declared, false)
    }

    /// The same for a tool that does not say itself what it declares. `rooted`: it opens files through the path guard
    /// alone.
    ///
    /// # Errors
    /// As for [`ToolRuntime::register`].
    pub(crate) fn register_as(
        &self,
        tool: Arc<dyn Tool>,
        declared: Declared,
        rooted: bool,
    ) -> Result<(), ToolError> {
        let spec = tool.spec().clone();
        let bad = |reason| ToolError::BadSchema {
            tool: spec.name.clone(),
            reason,
        };
        let schema = Schema::compile(tool.argument_schema()).map_err(bad)?;
        let output = declared.output_schema.as_ref();
        let output = output.map(OutputSchema::compile).transpose().map_err(bad)?;
        let descriptor = ToolDescriptor { spec, declared };
        checked(&descriptor, rooted)?;
        self.put(Entry {
            schema: Arc::new(schema),
            output: output.map(Arc::new),
            descriptor: Arc::new(descriptor),
            rooted,
            held: Vec::new(),
            tool,
        });
        Ok(())
    }

    fn put(&self, entry: Entry) {
        let name = &entry.descriptor.spec.name;
        let mut entries = self.write();
        match entries.iter_mut().find(|e| e.descriptor.spec.name == *name) {
            Some(old) => *old = entry,
            None => entries.push(entry),
        }
    }

    /// Holds a tool to less than it declares: the shorter time, fewer retries, and roots besides its own.
    ///
    /// # Errors
    /// [`ToolError::NotFound`]; [`ToolError::BadDescriptor`] where nothing would hold it to the roots.
    pub fn narrow(&self, tool: &str, to: &Constraints) -> Result<(), ToolError> {
        let mut entry = self.find(tool).ok_or_else(|| ToolError::NotFound {
            tool: tool.to_owned(),
            available: self.specs().into_iter().map(|s| s.name).collect(),
        })?;
        let mut descriptor = ToolDescriptor::clone(&entry.descriptor);
        let own = &mut descriptor.declared.constraints;
        own.timeout_ms = [own.timeout_ms, to.timeout_ms].into_iter().flatten().min();
        own.max_retries = own.max_retries.min(to.max_retries);
        own.deterministic_hooks |= to.deterministic_hooks;
        for (roots, more) in [
            (&mut own.allowed_read_roots, &to.allowed_read_roots),
            (&mut own.allowed_write_roots, &to.allowed_write_roots),
        ] {
            let Some(more) = more else { continue };
            entry.held.extend(roots.replace(more.clone()));
        }
        checked(&descriptor, entry.rooted)?;
        entry.descriptor = Arc::new(descriptor);
        self.put(entry);
        Ok(())
    }

    /// Binds contracts to providers; takes the place of what was bound before.
    pub fn bind(&self, routes: Routes) {
        *self.routes.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(routes);
    }

    /// From now on `listener` is told of every stage of every call.
    pub fn listen(&self, listener: Listener) {
        let mut listeners = self
            .listeners
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        Arc::make_mut(&mut listeners).push(listener);
    }

    /// The tools in full, in registry order, hidden ones included.
    #[must_use]
    pub fn descriptors(&self) -> Vec<Arc<ToolDescriptor>> {
        let entries = self.read();
        entries.iter().map(|e| Arc::clone(&e.descriptor)).collect()
    }

    /// Removes every tool of a source (`plugin:ID`, `mcp:NAME`).
    pub fn remove_source(&self, source: &str) {
        self.write().retain(|e| e.tool.spec().source != source);
    }

    /// Keeps the tools of which this holds; calls that run already go on.
    pub fn retain(&self, keep: impl Fn(&ToolSpec) -> bool) {
        self.write().retain(|entry| keep(entry.tool.spec()));
    }

    /// Takes from another runtime the tools of names that are not here.
    pub fn fill(&self, other: &Self) {
        let mut entries = self.write();
        for entry in other.read().iter() {
            let name = &entry.tool.spec().name;
            if !entries.iter().any(|it| it.tool.spec().name == *name) {
                entries.push(entry.clone());
            }
        }
    }

    /// What the tools say of themselves, in registry order, hidden ones included.
    #[must_use]
    pub fn specs(&self) -> Vec<ToolSpec> {
        self.read().iter().map(|e| e.tool.spec().clone()).collect()
    }

    /// The tool of that name, in full.
    #[must_use]
    pub fn descriptor(&self, name: &str) -> Option<Arc<ToolDescriptor>> {
        self.find(name).map(|e| e.descriptor)
    }

    /// What there is of that name.
    #[must_use]
    pub fn spec(&self, name: &str) -> Option<ToolSpec> {
        self.find(name).map(|e| e.tool.spec().clone())
    }

    /// Runs a call (D7): look up, validate, capabilities, hooks `tool.before_call`, validate again, normalise, the tool's own
    /// policy, started, permission questions, intent, bind to a provider, run under deadline and cancellation, output schema,
    /// output limits, hooks `tool.after_result`; hooks `tool.on_error` where one of them fails. The context is that of this call; its `call` is replaced.
    pub async fn execute(&self, call: ToolCall, ctx: ToolContext) -> Executed {
        let mut ctx = ctx.for_call(call);
        let (at, begun) = (now(), Instant::now());
        let listeners = self.listeners.read();
        let listeners = Arc::clone(&listeners.unwrap_or_else(PoisonError::into_inner));
        let entry = self.find(&ctx.call.tool);
        if let Some(entry) = &entry {
            ctx.apply_constraints(&entry.descriptor.declared.constraints, &entry.held);
        }
        let ctx = ctx;
        let told = Told::new(&ctx.call, listeners);
        let mut input = ctx.call.input.clone();
        let mut fingerprint = None;
        let stages = self.stages(entry, &ctx, &told, &mut input, &mut fingerprint);
        // What panics here costs the call, and is told and written down as every other failure.
        let ended = match AssertUnwindSafe(stages).catch_unwind().await {
            Ok(ended) => ended,
            Err(_) => Err(ToolError::failed(DEFECT).into()),
        };
        let outcome = match ended {
            Ok(output) => ToolOutcome::Completed { input, output },
            Err(stop) => ToolOutcome::Failed {
                code: stop.error.code().to_owned(),
                message: failed::explained(&stop.error, &input, told.began(), &ctx).await,
                input,
                metadata: stop.metadata,
            },
        };
        let label = match &outcome {
            ToolOutcome::Completed { .. } => "completed".to_owned(),
            ToolOutcome::Failed { code, .. } => code.clone(),
        };
        told.tell(&Stage::Ended { outcome: &label });
        let (retries, joined) = (told.retries(), told.joined());
        let record = ToolRecord {
            permissions: ctx.decisions(),
            fingerprint,
            retries,
            joined,
            call: ctx.call,
            turn: None,
            provenance: Provenance::default(),
            outcome: label,
            duration_ms: begun.elapsed().as_secs_f64() * 1000.0,
            at,
            audit: ToolAudit::default(),
        };
        Executed {
            outcome,
            record,
            _seal: Seal,
        }
    }

    async fn stages(
        &self,
        entry: Option<Entry>,
        ctx: &ToolContext,
        told: &Told<'_>,
        input: &mut Value,
        fingerprint: &mut Option<String>,
    ) -> Result<ToolOutput, Stop> {
        let name = ctx.call.tool.as_str();
        let entry = entry.ok_or_else(|| ToolError::NotFound {
            tool: name.to_owned(),
            available: self.specs().into_iter().map(|s| s.name).collect(),
        })?;
        let declared = &entry.descriptor.declared;
        told.tell(&Stage::Found {
            version: &declared.version,
        });
        check(&entry, input, name, false)?;
        entry.tool.precheck(input)?;
        told.tell(&Stage::Validated);
        granted(&entry, ctx)?;
        told.tell(&Stage::Granted);
        alive(ctx)?;

        let asked = before_call::Input {
            tool: name,
            session_id: &ctx.call.session_id,
            call_id: &ctx.call.call_id,
        };
        let (point, payload) = asked.call(&before_call::Output { args: input });
        let verdict = ctx.host.hooks(point, payload).await;
        let requires_approval = verdict.requires_approval;
        let rewritten = rewrite(verdict, input).map_err(|block| blocked(block, None))?;
        // Checked even when nothing changed the arguments visibly: cheap, and no path around it (invariant 7).
        check(&entry, input, name, rewritten)?;
        told.tell(&Stage::Hooked { rewritten });
        alive(ctx)?;

        // What is asked about is what runs: from here on nobody can change it.
        let input = &*input;
        let canonical = canonical(&entry, input)?;
        *fingerprint = Some(canonical.hex());
        told.tell(&Stage::Canonical {
            fingerprint: canonical.fingerprint,
        });
        entry.tool.policy(input, ctx)?;
        let routes = self.routes.read();
        let routes = Arc::clone(&routes.unwrap_or_else(PoisonError::into_inner));
        let (tool, undeclared) = (&entry.descriptor, entry.tool.is_undeclared());
        routes.passed_by(tool, undeclared, entry.tool.place(input), ctx)?;
        let bound = routes.bind(declared.contract, input, ctx);
        let mut questions = match bound.remote() {
            None => entry.tool.permissions(input, ctx)?,
            Some(_) => entry.tool.permissions_elsewhere(input, ctx)?,
        };
        if requires_approval && questions.iter().all(|ask| ask.permission == ELSEWHERE) {
            questions.push(PermissionAsk {
                permission: name.to_owned(),
                patterns: vec!["*".to_owned()],
                metadata: json!({"tool": name, "input": input}),
                ..PermissionAsk::default()
            });
        }
        // Before the questions, as in the reference: clients show what is asked about from the call's arguments.
        ctx.host.started(input);
        for ask in questions {
            tokio::select! {
                answer = ctx.ask(ask) => answer?,
                () = ctx.cancel.cancelled() => return Err(ToolError::Cancelled.into()),
            }
        }
        told.tell(&Stage::Decided);
        ctx.host
            .record_intent(input)
            .await
            .map_err(ToolError::failed)?;
        if let Some(contract) = bound.contract {
            told.tell(&Stage::Routed {
                contract,
                provider: bound.name(),
                rule: bound.rule,
            });
        }
        let output = attempt::run(&entry, input, &canonical, &bound, &self.same, told, ctx)
            .await
            .map_err(|error| Stop {
                error,
                metadata: ctx.reported(),
            })?;
        answers(&entry, name, &output, ctx.answer().as_ref())?;
        told.tell(&Stage::Answered);
        let output = limited(finish(output, ctx), ctx);
        after(&entry.tool, ctx, input, output).await
    }

    fn find(&self, name: &str) -> Option<Entry> {
        self.read()
            .iter()
            .find(|e| e.descriptor.spec.name == name)
            .cloned()
    }
    fn read(&self) -> std::sync::RwLockReadGuard<'_, Vec<Entry>> {
        self.entries
            .read()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
    fn write(&self) -> std::sync::RwLockWriteGuard<'_, Vec<Entry>> {
        self.entries
            .write()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

fn check(entry: &Entry, input: &Value, name: &str, rewritten: bool) -> Result<(), ToolError> {
    let tool = name.to_owned();
    entry.schema.check(input).map_err(|reason| {
        if rewritten {
            ToolError::InvalidRewrite { tool, reason }
        } else {
            ToolError::InvalidInput { tool, reason }
        }
    })
}

fn checked(descriptor: &ToolDescriptor, rooted: bool) -> Result<(), ToolError> {
    match descriptor.problems(rooted).into_iter().next() {
        None => Ok(()),
        Some(problem) => Err(ToolError::BadDescriptor {
            tool: descriptor.spec.name.clone(),
            key: problem.key,
            reason: problem.message,
        }),
    }
}

fn granted(entry: &Entry, ctx: &ToolContext) -> Result<(), ToolError> {
    let needs = &entry.descriptor.declared.capabilities;
    for grant in ctx.granted.iter().chain(entry.tool.grant()) {
        let missing = needs.iter().filter(|it| !grant.capabilities.contains(it));
        let missing: Vec<&'static str> = missing.map(|it| it.name()).collect();
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

/// An answer of an MCP server is held to its schema in the structured form, which comes beside the texts; any other as the
/// text that it is.
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

/// The text is the hook's own, as in the reference. A code of the plugin's own is kept with the call, as `refusal`.
fn blocked(block: Block, mut metadata: Option<Value>) -> Stop {
    if !block.code.starts_with("hook.") {
        let refusal = json!({"code": block.code, "details": block.details});
        match &mut metadata {
            Some(Value::Object(fields)) => {
                fields.insert("refusal".to_owned(), refusal);
            }
            _ => metadata = Some(json!({ "refusal": refusal })),
        }
    }
    Stop {
        error: ToolError::Blocked(block.message),
        metadata,
    }
}

// Takes over what the hooks left as arguments; tells whether they differ. An output without `args` leaves them as they were.
fn rewrite(verdict: HookVerdict, input: &mut Value) -> Result<bool, Block> {
    if let Some(block) = verdict.block {
        return Err(block);
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

fn now() -> Millis {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |d| u64::try_from(d.as_millis()).unwrap_or(u64::MAX))
}
