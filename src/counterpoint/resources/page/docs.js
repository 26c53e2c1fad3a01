// The API page: Swagger UI, which sends the key that the search page keeps.

const key = sessionStorage.getItem("key");
const headers = key ? { authorization: `Bearer ${key}` } : {};
const answer = await fetch("openapi.json", { headers });
if (answer.ok) {
  SwaggerUIBundle({
    dom_id: "#api",
    spec: await answer.json(),
    validatorUrl: null, // no request to another server
    requestInterceptor: (request) => Object.assign(request, { headers: { ...request.headers, ...headers } }),
  });
} else {
  document.getElementById("locked").hidden = false;
}
