-- Within a version what is retired makes room for what is admitted.
SELECT version, toString(service), toString(attribute), value, retired
FROM admitted_values
WHERE pipeline = {pipeline:String} AND version > {after:UInt64}
ORDER BY version, retired DESC, service, attribute, value
