SELECT names, texts FROM sources WHERE kind = {kind:String} AND revision = {revision:String} LIMIT 1
