// Package openapi has what the API's document uses of OpenAPI 3.1. The JSON of a value has the names of objects in
// alphabetical order, so that fields stand in that order.
package openapi

import "encoding/json"

// Document describes an API.
type Document struct {
	Components Components            `json:"components"`
	Info       Info                  `json:"info"`
	OpenAPI    string                `json:"openapi"`
	Paths      map[string]Path       `json:"paths"`
	Security   []map[string][]string `json:"security"` // Each is enough: scopes by the name of a scheme, or nothing.
}

// Info says which API it is.
type Info struct {
	Description string `json:"description"`
	Title       string `json:"title"`
	Version     string `json:"version"`
}

// Components are what other parts refer to, by name.
type Components struct {
	Schemas         map[string]*Schema        `json:"schemas"`
	SecuritySchemes map[string]SecurityScheme `json:"securitySchemes"`
}

// SecurityScheme is a way to prove who asks.
type SecurityScheme struct {
	Description string `json:"description"`
	Scheme      string `json:"scheme"`
	Type        string `json:"type"`
}

// Path has the operations of a path, by method in lower case.
type Path map[string]*Operation

// Operation is what one method of one path does.
type Operation struct {
	Description string              `json:"description,omitempty"`
	OperationID string              `json:"operationId"`
	Parameters  []Parameter         `json:"parameters,omitempty"`
	RequestBody *RequestBody        `json:"requestBody,omitempty"`
	Responses   map[string]Response `json:"responses"` // by status, or default
	Summary     string              `json:"summary,omitempty"`
}

// Parameter is a value in the path, the query or a header.
type Parameter struct {
	AllowEmptyValue bool    `json:"allowEmptyValue,omitempty"`
	Description     string  `json:"description,omitempty"`
	In              string  `json:"in"`
	Name            string  `json:"name"`
	Required        bool    `json:"required,omitempty"`
	Schema          *Schema `json:"schema"`
}

// RequestBody is the body of a request.
type RequestBody struct {
	Content  Content `json:"content"`
	Required bool    `json:"required,omitempty"`
}

// Response is an answer; without content it has no body.
type Response struct {
	Content     Content `json:"content,omitempty"`
	Description string  `json:"description"`
}

// Content is what a body is, by media type.
type Content map[string]MediaType

// MediaType is the schema of a body; nil: it is not described.
type MediaType struct {
	Schema *Schema `json:"schema,omitempty"`
}

// Schema describes JSON by JSON Schema 2020-12; an empty one allows any JSON. With Ref it is the schema that stands
// elsewhere, and has nothing else but a description.
type Schema struct {
	Ref                  string             `json:"$ref,omitempty"`
	AdditionalProperties *Schema            `json:"additionalProperties,omitempty"`
	Description          string             `json:"description,omitempty"`
	Enum                 []string           `json:"enum,omitempty"`
	Examples             []string           `json:"examples,omitempty"`
	Format               string             `json:"format,omitempty"`
	Items                *Schema            `json:"items,omitempty"`
	Maximum              *int64             `json:"maximum,omitempty"`
	Minimum              *int64             `json:"minimum,omitempty"`
	Pattern              string             `json:"pattern,omitempty"`
	Properties           map[string]*Schema `json:"properties,omitempty"`
	Required             []string           `json:"required,omitempty"`
	Type                 Types              `json:"type,omitempty"`
}

// Types are the types that a value may have. A single one is a string in JSON.
type Types []string

// MarshalJSON implements json.Marshaler.
func (t Types) MarshalJSON() ([]byte, error) {
	if len(t) == 1 {
		return json.Marshal(t[0])
	}
	return json.Marshal([]string(t))
}
