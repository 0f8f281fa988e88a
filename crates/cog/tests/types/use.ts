// Uses the functions of modules with the types of `cog types`. It is checked, not run.

import { codeReviewer, type CodeReviewerInput } from "./modules.js";

export async function titles(code: string): Promise<string[]> {
  const input: CodeReviewerInput = { code, focus: ["security"] };
  const result = await codeReviewer(input, { baseUrl: "http://127.0.0.1:1", signal: AbortSignal.timeout(1000) });
  if (!result.ok) {
    throw new Error(`${result.error.code}: ${result.error.message}`);
  }
  const verdict: "approve" | "change" | "reject" = result.data.verdict;
  // @ts-expect-error A module has no such field.
  const wrong = result.data.verdicts;
  return result.data.issues.filter((issue) => (issue.line ?? 0) > 1).map((issue) => `${verdict} ${wrong} ${issue.title}`);
}

// @ts-expect-error The input lacks a field.
export const incomplete: CodeReviewerInput = { language: "rust" };
