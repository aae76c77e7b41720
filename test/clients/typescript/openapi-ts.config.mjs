// The client of docs/tenants.md, which also checks each response against the schema of its operation.
export default {
	input: "openapi.yaml",
	output: { path: "headgate", module: { extension: ".ts" } },
	plugins: ["@hey-api/client-fetch", "@hey-api/typescript", "zod", { name: "@hey-api/sdk", validator: { response: "zod" } }],
};
