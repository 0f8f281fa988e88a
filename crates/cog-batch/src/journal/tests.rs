use super::*;
use crate::{Order, ResultLine};

fn description() -> Description {
    Description::default().with("module", "summarize").with("model", "mock")
}

fn line(row: u64) -> Vec<u8> {
    format!(r#"{{"row":{row},"ok":{}}}"#, is_ok(row)).into_bytes()
}

fn is_ok(row: u64) -> bool {
    !row.is_multiple_of(3)
}

fn hash(row: u64) -> RowHash {
    RowHash::from_bytes(&row.to_le_bytes())
}

async fn append(journal: &Journal, rows: impl IntoIterator<Item = u64>) -> Result<(), JournalError> {
    for row in rows {
        journal.append(row, hash(row), is_ok(row), line(row)).await?;
    }
    Ok(())
}

fn expected(rows: impl IntoIterator<Item = u64>) -> Vec<ResultLine> {
    rows.into_iter().map(|row| ResultLine { row, ok: is_ok(row), json: line(row) }).collect()
}

#[tokio::test]
async fn results_return_in_either_order() {
    let place = tempfile::tempdir().unwrap();
    let paths = JournalPaths::beside(&place.path().join("out"));
    let (journal, finished) = Journal::open(&paths, &description(), Resume::Same).unwrap();
    assert!(finished.is_empty());
    append(&journal, [3, 1, 2]).await.unwrap();
    drop(journal);
    let (journal, finished) = Journal::open(&paths, &description(), Resume::Same).unwrap();
    assert_eq!((finished.len(), finished.failed().collect::<Vec<_>>()), (3, vec![3]));
    assert_eq!(finished.get(2).map(|row| row.hash), Some(hash(2)));
    append(&journal, [0, 3]).await.unwrap();
    let mut results = journal.close().await.unwrap();
    let lines: Result<Vec<_>, _> = results.lines(Order::Input).unwrap().collect();
    assert_eq!(lines.unwrap(), expected([0, 1, 2, 3]));
    let lines: Result<Vec<_>, _> = results.lines(Order::Free).unwrap().collect();
    assert_eq!(lines.unwrap(), expected([1, 2, 0, 3]));
    results.remove().unwrap();
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
}
