//! The forms in which a model can get files of a user message.

use outrigger_protocol::model::ModelInfo;

/// The treatment of a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FilePlan<'a> {
    Image,
    Pdf,
    /// Base64 data and its format.
    Audio {
        data: &'a str,
        format: &'static str,
    },
    /// The model does not support it; tell it so with this text, as OpenCode does, instead of failing the turn.
    Say(String),
}

/// Decides by media type and by the model's capabilities. Unknown capabilities (no `modalities` configured) count as
/// no.
pub(crate) fn plan_file<'a>(
    model: &ModelInfo,
    mime: &str,
    url: &'a str,
    name: Option<&str>,
) -> FilePlan<'a> {
    let takes = model.capabilities.input;
    let kind = mime.split('/').next().unwrap_or_default();
    let plan = match kind {
        "image" if takes.image => Some(FilePlan::Image),
        "application" if mime == "application/pdf" && takes.pdf => Some(FilePlan::Pdf),
        "audio" if takes.audio => {
            let format = if mime.contains("wav") { "wav" } else { "mp3" };
            data_of(url).map(|data| FilePlan::Audio { data, format })
        }
        _ => None,
    };
    plan.unwrap_or_else(|| {
        let name = name.map_or_else(|| "a file".to_owned(), |n| format!("\"{n}\""));
        FilePlan::Say(format!(
            "ERROR: {name} of type {mime} was attached, and this model cannot take it. Tell the user."
        ))
    })
}

/// Returns the base64 text of a `data:` URL.
pub(crate) fn data_of(url: &str) -> Option<&str> {
    let (head, data) = url.strip_prefix("data:")?.split_once(',')?;
    head.ends_with(";base64").then_some(data)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_go_in_the_form_that_the_model_takes() {
        let mut model = ModelInfo::default();
        let png = "data:image/png;base64,AAAA";
        assert!(
            matches!(plan_file(&model, "image/png", png, Some("a.png")), FilePlan::Say(t) if t.contains("a.png"))
        );
        model.capabilities.input.image = true;
        model.capabilities.input.audio = true;
        assert_eq!(plan_file(&model, "image/png", png, None), FilePlan::Image);
        assert_eq!(
            plan_file(&model, "audio/wav", "data:audio/wav;base64,BBBB", None),
            FilePlan::Audio {
                data: "BBBB",
                format: "wav"
            }
        );
        assert!(matches!(
            plan_file(&model, "application/pdf", png, None),
            FilePlan::Say(_)
        ));
        assert_eq!(data_of("https://a/b"), None);
    }
}
